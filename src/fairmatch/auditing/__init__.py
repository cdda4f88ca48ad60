"""Any model's scores to an audit, a tree of facts."""
