"""The edge node of Sparkplug B: the station and its equipment publish their tags to host applications."""
