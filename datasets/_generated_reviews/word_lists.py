"""List the words and sentences of the generated reviews, all written for LeakBoard.

The order of each list is part of the model. In `PREFERRED` the position i of a word, from 0, decides everything:

| position | meaning |
|---|---|
| i even, odd | preferred by the first, the second gender |
| i mod 4 is 0 or 1, 2 or 3 | preferred by the first, the second age group |
| smaller i // 4 | more common |

So the preferences are arbitrary: they say nothing about how people write.
"""

from typing import NamedTuple

GENDERS = ("female", "male")
AGES = ("under 35", "over 45")
SENTIMENTS = ("negative", "positive")
TOPICS = ("appliance", "book", "hotel", "museum", "restaurant")
ENTITIES = {
    "Maria Keller": 0.35,
    "Tobin Ashgrove": 0.25,
    "Selma Varga": 0.15,
    "Ilan Quist": 0.1,
    "Noor Pelletier": 0.1,
}
"""The prevalence of each person: the share of texts in which the person is present."""

ANY = "any"
"""Key of the words for every topic, or for both sentiments."""


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split("|"))


PREFERRED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # slot: (attributes that its words show, words)
    "time": (
        ("age",),
        _phrases("""last weekend | two weeks ago | this spring | earlier this month | on a quiet Monday
        | during the holidays | after a long walk | just before Easter | in late October | around noon
        | on a rainy evening | one morning in March | after the concert | right after payday | at the end of summer
        | a few days ago"""),
    ),
    "companion": (
        ("gender",),
        _phrases("""with a friend | with two colleagues | with my cousins | with a neighbour | with my parents
        | with the whole family | with people from my choir | with an old classmate | with my flatmate
        | with a visitor from abroad | with our walking group | with my study partner | with my team
        | with some relatives | with a small party | with my quiz club"""),
    ),
    "tried": (
        ("age",),
        _phrases("""tried | chose | picked | tested | went for | decided on | settled on | discovered | came across
        | opted for | took a chance on | finally got round to"""),
    ),
    "intensifier": (
        ("gender", "age"),
        _phrases("""really | very | quite | rather | truly | pretty | especially | remarkably | surprisingly | fairly
        | decidedly | particularly | unusually | genuinely | noticeably | thoroughly"""),
    ),
    "adverb": (
        ("gender",),
        _phrases("""usually | always | often | mostly | generally | normally | frequently | typically | constantly
        | regularly | commonly | habitually"""),
    ),
    "seek": (
        ("age",),
        _phrases("""look for | care about | ask for | pay attention to | hope for | value | insist on | appreciate
        | search for | wish for | check for | count on"""),
    ),
    "quality": (
        ("gender", "age"),
        _phrases("""comfort | good value | honesty | variety | attention to detail | a calm mood | simplicity
        | careful work | originality | punctuality | a sense of humour | clear information | generosity | tradition
        | warm colour | plain speaking | elegance | durability | fresh thinking | patience | reliability | charm
        | practical design | peace and quiet"""),
    ),
    "hedge": (
        ("gender",),
        _phrases("""all in all | on the whole | in short | to sum up | looking back | in the end | by and large
        | overall | when all is said and done | taken together | as things stand | at the end of the day | for my part
        | on reflection | everything considered | in a word"""),
    ),
    "written": (
        ("gender",),
        _phrases("""written | noted down | typed | posted | jotted down | put together | drafted | scribbled | composed
        | recorded | set down | sent off"""),
    ),
    "situation": (
        ("age",),
        _phrases("""on the train home | over a cup of tea | in the garden | at the kitchen table | on my lunch break
        | from a park bench | while dinner cooks | before going to bed | at the bus stop | between two meetings
        | in a waiting room | on the balcony | by the window | after breakfast | from the sofa
        | with the radio playing"""),
    ),
}

SENTIMENTAL: dict[str, dict[str, tuple[str, ...]]] = {
    "adjective": {
        "negative": _phrases("""disappointing | poor | dull | careless | shabby | tiresome | confusing | bland | dreary
        | unpleasant | sloppy | frustrating | clumsy | mediocre | lifeless | overrated"""),
        "positive": _phrases("""good | lovely | delightful | pleasant | impressive | excellent | enjoyable | charming
        | splendid | inviting | superb | thoughtful | satisfying | refreshing | memorable | inspiring"""),
        ANY: _phrases("""unusual | ordinary | different | traditional | modern | plain | simple | old-fashioned"""),
    },
    "verdict": {
        "negative": _phrases("""I would not choose it again | it was a waste of money | I expected far more
        | I cannot recommend it | I regret the expense | my patience ran out | it left me cold | I felt let down"""),
        "positive": _phrases("""I would choose it again | it was worth every cent | I got more than I expected
        | I warmly recommend it | I am glad I did it | my hopes were exceeded | it made my day | I was won over"""),
        ANY: _phrases("""it depends on what you expect | I am still thinking it over | it was as described
        | opinions will differ | it filled an afternoon | you should see for yourself"""),
    },
}

TOPICAL: dict[str, dict[str, tuple[str, ...]]] = {
    "thing": {
        "appliance": _phrases("this kettle | this toaster | a new blender | this vacuum cleaner | this coffee machine"),
        "book": _phrases("this novel | this crime story | a travel memoir | this cookbook | this short biography"),
        "hotel": _phrases("this hotel | a small guesthouse | this lakeside inn | this hostel | a mountain lodge"),
        "museum": _phrases("this museum | a photo exhibition | this science centre | this gallery | the maritime hall"),
        "restaurant": _phrases("this bistro | a noodle bar | this pizzeria | this tavern | the new vegetarian diner"),
        ANY: _phrases("a local favourite | a well-known name | something new | a tip from the newspaper"),
    },
    "first_aspect": {
        "appliance": _phrases("the motor | the power cable | the lid | the filter | the control panel | the handle"),
        "book": _phrases("the plot | the opening chapter | the narrator | the dialogue | the cover | the translation"),
        "hotel": _phrases("the room | the mattress | the lobby | the shower | the sea view | the breakfast buffet"),
        "museum": _phrases("the collection | the guided tour | the audio guide | the main hall | the lighting"),
        "restaurant": _phrases("the menu | the soup | the dessert | the house wine | the terrace | the pasta"),
        ANY: _phrases("the price | the first impression | the whole idea | the style"),
    },
    "second_aspect": {
        "appliance": _phrases("the battery | the noise level | the manual | the warranty | the cleaning brush"),
        "book": _phrases("the ending | the pacing | the main character | the index | the typeface | the second half"),
        "hotel": _phrases("the pillow | the swimming pool | the corridor | the check-in | the minibar | the lift"),
        "museum": _phrases("the gift shop | the cloakroom | the sculpture garden | the ticket queue | the film corner"),
        "restaurant": _phrases("the salad | the main course | the bread basket | the sauce | the seating | the spice"),
        ANY: _phrases("the customer service | the presentation | the overall quality | the atmosphere"),
    },
}

FREE: dict[str, tuple[str, ...]] = {
    "whereabouts": _phrases("""at the counter | by the entrance | on the phone | at the information desk
    | from the service team | on the late shift | from the office upstairs | near the till"""),
    "deed": _phrases("""answered our questions | explained everything | gave us a leaflet | took down our details
    | told us a little story | handed us the receipt | offered to help | showed us the way | remembered us
    | dealt with our request"""),
}


class Sentence(NamedTuple):
    """A kind of sentence: every template has every slot once, so that the text shows all choices."""

    slots: tuple[str, ...]
    templates: tuple[str, ...]


def _aspect(slot: str, *templates: str) -> Sentence:
    return Sentence((slot, "intensifier", "adjective"), tuple(t.replace("{aspect}", f"{{{slot}}}") for t in templates))


OPENING = (
    Sentence(
        ("time", "companion", "tried", "thing"),
        (
            "{time} I {tried} {thing} {companion}.",
            "I {tried} {thing} {companion} {time}.",
            "{companion} I {tried} {thing} {time}.",
            "{time}, {companion}, I {tried} {thing}.",
        ),
    ),
    _aspect(
        "first_aspect",
        "{aspect} was {intensifier} {adjective}.",
        "I found {aspect} {intensifier} {adjective}.",
        "{aspect} struck me as {intensifier} {adjective}.",
        "{intensifier} {adjective}, that was {aspect}.",
    ),
    _aspect(
        "second_aspect",
        "{aspect} seemed {intensifier} {adjective}.",
        "{aspect}, too, turned out {intensifier} {adjective}.",
        "as for {aspect}, I would call it {intensifier} {adjective}.",
        "then {aspect}: {intensifier} {adjective}.",
    ),
)
"""The sentences before those about persons."""

PERSON = Sentence(
    ("whereabouts", "deed"),
    (
        "{name} {whereabouts} {deed}.",
        "it was {name} {whereabouts} who {deed}.",
        "{whereabouts} {name} {deed}.",
        "we also met {name} {whereabouts}, who {deed}.",
    ),
)
"""The sentence about a mentioned person; there is one for each, in the order of `ENTITIES`."""

CLOSING = (
    Sentence(
        ("adverb", "seek", "quality"),
        (
            "I {adverb} {seek} {quality}.",
            "{quality} is something I {adverb} {seek}.",
            "what I {adverb} {seek} is {quality}.",
        ),
    ),
    Sentence(("hedge", "verdict"), ("{hedge}, {verdict}.", "{verdict}, {hedge}!", "so, {hedge}, {verdict}.")),
    Sentence(("written", "situation"), ("{written} {situation}.", "({written} {situation}.)")),
)
"""The sentences after those about persons."""

FIRST_NAMES = _phrases("""Alba | Bruno | Celia | Dario | Edda | Felix | Greta | Hugo | Irma | Jonas | Katja
    | Leon | Mira | Nils | Olga | Pablo | Rita | Sven | Tilda | Viktor | Agnes | Boris | Clara | Dmitri | Elisa
    | Farid | Gloria | Henrik | Ines | Jakob | Kamil | Lucia | Marek | Nadia | Oskar | Petra | Rafael | Sonja
    | Tomas | Ursula | Amara | Basil | Carmen | Diego | Esther | Fabio | Gunnar | Hanna | Ivan | Judith | Karim
    | Lena | Mateo | Nora | Omar | Paula | Rosa | Stefan | Teresa | Vera | Anton | Bianca | Cyril | Doris | Emil
    | Fiona | Gustav | Helga | Igor | Joana | Kurt | Linus | Marta | Nikos | Otto | Pilar | Ruben | Silvia
    | Theo | Wanda | Astrid | Bela | Cora | Denis | Elsa | Franz | Gisela | Hans | Ida | Janek | Kirsten | Lars
    | Malik | Nelly | Olaf | Priya | Roman | Saskia | Tariq | Yara""")
LAST_NAMES = _phrases("""Abbott | Brandt | Castillo | Dubois | Ekström | Fontana | Grabowski | Hanley | Ito
    | Jansen | Kovac | Lindqvist | Moreau | Novak | Okafor | Petrov | Rossi | Schuster | Tanaka | Whitlock
    | Almeida | Bauer | Cohen | Dvorak | Eriksen | Fischer | Gomez | Horvat | Ivanova | Jensen | Kaminski
    | Larsen | Mancini | Nguyen | Olsen | Pereira | Ramirez | Svensson | Tomic | Vogel | Aydin | Bergman
    | Carvalho | Delgado | Engel | Ferrari | Garcia | Hoffmann | Ibrahim | Jovanovic | Keating | Lombardi
    | Meyer | Nielsen | Ortega | Popescu | Rahman | Sato | Teixeira | Weber | Arslan | Banerjee | Conti
    | Dimitrov | Esposito | Farkas | Gruber | Hassan | Iversen | Janssen | Kowalski | Lefevre | Marino | Nagy
    | Osman | Peeters | Richter | Silva | Thomsen | Yilmaz | Ahmed | Blom | Cruz | Duarte | Evans | Fuchs
    | Greco | Haas | Ilic | Jung | Klein | Leroy | Mendes | Noack | Oliveira | Pohl | Romano | Schmid | Torres
    | Zeman""")
STREETS = _phrases("""Acorn | Bakery | Chapel | Dairy | Elm | Foundry | Garden | Harbour | Island | Juniper
    | Kiln | Lantern | Market | Nursery | Orchard | Poplar | Quarry | River | Station | Tower | Abbey | Bridge
    | Castle | Dock | Eagle | Fountain | Granary | Hazel | Ivy | Jasmine | Kestrel | Laurel | Meadow | Needle
    | Oak | Park | Queen | Rowan | Spring | Temple | Alder | Beech | Clover | Dove | Elder | Fern | Glade
    | Heather | Iris | Jubilee | King | Lime | Mill | North | Olive | Pine | Ridge | School | Thistle | Valley""")
"""Names and streets of the identifiers before a text. All are equally likely."""
