"""What releases and private training cost: upper bounds on epsilon."""
