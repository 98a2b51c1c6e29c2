"""What attacking a running mechanism or a training proves: lower bounds on epsilon."""
