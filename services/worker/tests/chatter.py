"""A trainer whose libraries print JSON of their own among its lines; run by a test in place of the real one."""

LINES = (
    "5",
    '["a list"]',
    '{"no": "type"}',
    '{"t": "news", "x": 1}',
    '{"t": ["ready"]}',
    '{"t": "ready"}',
    '{"t": "ready", "score": "fast", "pid": 1}',
    '{"t": "ready", "score": 2.0, "pid": 1}',
    '{"t": "progress", "lease": "a", "step": 1.5, "steps_total": 7, "loss": null, "samples": 8}',
    '{"t": "failed", "lease": 3, "reason": "why"}',
    '{"t": "anchored"}',
    '{"t": "anchor_wrong", "lease": "a"}',
    '{"t": "anchored", "lease": "a"}',
    '{"t": "anchor_wrong", "lease": "a", "reason": "why"}',
    '{"t": "stopped", "lease": "a"}',
)

if __name__ == "__main__":
    print("\n".join(LINES), flush=True)
