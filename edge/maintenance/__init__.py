"""What the person needs who keeps a gateway running: examine it, save and restore it, gather what support asks for."""
