"""Programs and data readers that go with the tutorials."""
