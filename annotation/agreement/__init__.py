"""Inter-annotator agreement: Cohen's and Fleiss' kappa, Krippendorff's alpha, Dawid-Skene, and the pages of them."""
