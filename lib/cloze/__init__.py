"""The psycholinguistic diagnostics (Ettinger 2020): items with human cloze answers, what models answer, measures."""
