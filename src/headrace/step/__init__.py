"""From a request for a step to its plan, and the engine that does so in one process."""
