"""Read and write Markdown in sections: findings of boards, explanations of papers, and README files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FINDINGS = "findings.md"
SENTENCE_END = re.compile(r"(?<=[.?!]) +(?=[A-Z])")
"""Where a sentence of an answer ends and the next one begins."""
LEAD = 240
"""Most letters that a page shows first, unless one sentence is longer."""


@dataclass(frozen=True)
class Findings:
    """Text about a board: ``# question``, the answer as first paragraph, then the details (Markdown)."""

    question: str = ""
    answer: str = ""
    details: str = ""

    @property
    def lead(self) -> str:
        """Return the first sentences of the answer, which a page shows first: one, or more if they are short."""
        first, *others = SENTENCE_END.split(self.answer)
        for sentence in others:
            if len(first) + len(sentence) >= LEAD:
                break
            first = f"{first} {sentence}"
        return first

    @property
    def more(self) -> str:
        """Return the other sentences of the answer, then the details."""
        return "\n\n".join(filter(None, [self.answer.removeprefix(self.lead).strip(), self.details]))


def read_findings(text: str) -> Findings:
    """Return the question, the answer and the details of a ``findings.md``."""
    blocks = [block.strip() for block in text.strip().split("\n\n") if block.strip()]
    question = blocks.pop(0).removeprefix("# ") if blocks and blocks[0].startswith("# ") else ""
    answer = blocks.pop(0) if blocks else ""
    return Findings(question, " ".join(answer.split()), "\n\n".join(blocks))


def read_sections(text: str) -> dict[str, str]:
    """Return the body of each section by its heading ``## heading``; text before the first heading is left out."""
    sections = [section.partition("\n") for section in text.split("## ")[1:]]
    return {heading.strip(): body.strip() for heading, _, body in sections}


def write_sections(title: str, lead: Sequence[str], sections: Iterable[tuple[str, Sequence[str]]] = ()) -> str:
    """Return a page in Markdown; empty blocks and sections without blocks are left out.

    Args:
        title: of the page.
        lead: blocks below the title.
        sections: headings, each with its blocks.
    """
    blocks = [f"# {title}" if title else "", *lead]
    for heading, body in sections:
        blocks += [f"## {heading}", *body] if any(body) else []
    return "\n\n".join(filter(None, blocks)) + "\n"


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]], right: Sequence[bool] = ()) -> str:
    """Return a Markdown table of cells that are Markdown already.

    Args:
        head: headings of the columns.
        lines: cells, a line each.
        right: which columns are set to the right; none, if left out.
    """
    rule = ["---:" if is_right else "---" for is_right in right or [False] * len(head)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *lines])
