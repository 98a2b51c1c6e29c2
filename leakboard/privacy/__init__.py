"""Release vectors privately: mechanisms with theorems, broken controls, bounds on epsilon, and audits of claims."""
