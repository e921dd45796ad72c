"""Views as terminal text, SVG, PNG, HTML and JSON documents.

Nothing here reads a recording or writes a file. Names of processes, functions and
cgroups are chosen by whoever runs a program, so they are hostile: every output
shows them as text and never obeys them (`text.visible`).
"""
