"""Code for machines: one folder for each kind of device."""
