"""Time and traffic: what is counted of a loop program, and what a machine can do in a second."""
