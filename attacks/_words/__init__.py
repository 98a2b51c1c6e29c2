"""Parts of the word attack: lengths and hubs, averages of own tables, weighed directions, and what names words."""
