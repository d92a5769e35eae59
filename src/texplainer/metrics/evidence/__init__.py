"""What metrics look at: rows, neighbours, masks, and the explanations of them."""
