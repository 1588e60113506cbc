"""Random forests and boosted trees."""
