"""The frozen result of an explanation, and how it is put together from blocks of rows."""
