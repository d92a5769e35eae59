"""The pages of results: what is written about the numbers, in Markdown and HTML, and their figures."""
