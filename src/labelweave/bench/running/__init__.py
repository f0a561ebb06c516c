"""Running the cells of a suite: the plan, the workers, and what one cell does."""
