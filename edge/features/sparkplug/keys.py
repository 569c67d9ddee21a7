"""What the Sparkplug edge node keeps in Redis."""

from edge.store.keys import OURS, key

edge_node = key(
    "hash", "sparkplug", OURS, "The last birth number of the Sparkplug edge node, and of what it has published"
)
