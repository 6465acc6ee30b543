"""Sources of the labels of an export: all grades, a version of the qrels, routes that failed their audit."""
