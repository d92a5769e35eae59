"""Second-order Taylor terms of the explained function, averaged over the neighbourhood of a row."""
