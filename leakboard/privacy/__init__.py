"""Release vectors privately: mechanisms, protections of stores, bounds on epsilon, and audits of claims."""
