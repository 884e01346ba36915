"""Recipes: how regions may run on a target. They offer candidates; `decisions` chooses."""
