"""How smooth the page is with many workers, rounds and lines, and what an idle tab costs."""
