"""The data of the plant as it travels and is stored; no behaviour."""
