"""How the bundled models were trained; ``python -m lib.training --help`` lists what can be done again."""
