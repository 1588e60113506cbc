"""A step as the one who asks for it sees it: parts, who still runs, and how it ends."""
