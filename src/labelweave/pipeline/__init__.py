"""From a method's id and a data set to a fitted, scored and saved model.

What the command line, the bench and reports share: recipes of estimators, the honest protocol,
scores, and what a model folder records about its training.
"""
