"""Training sets in which length says nothing about the score (Prism 3.4): cells of both are capped."""
