"""Training sets where length says nothing about the score (Prism 3.4): cells are capped."""
