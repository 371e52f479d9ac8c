"""What a model contains, and what differs between two: inspect, diff, dump, view, and the page."""
