"""Formal privacy: mechanisms with their theorems, broken controls, upper bounds on epsilon, and audits of claims."""
