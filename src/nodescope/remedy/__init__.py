"""Plan a remedy, guard it, apply it step by step, undo it, and prove whether it worked."""
