"""The data of the plant as it travels and is stored, and what it says alone, as why an order is refused."""
