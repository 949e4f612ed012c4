"""Other answers to the headline's question: bounds, sides, and the kernel's width."""
