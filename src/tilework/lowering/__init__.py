"""Loop programs to register form: typed values, instructions, loops and branches, the same for every target."""
