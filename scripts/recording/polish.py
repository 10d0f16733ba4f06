"""Makes a picture of svg-term-cli fit for a page: a name for those who do not see it, and rest for those who want no motion.

Reads the SVG on stdin and writes it on stdout.
"""

import re
import sys

TITLE = "A session of ralph in a terminal: a sentence becomes a task, another agent reviews it, two agents work, the result is proven"


def main():
    svg = sys.stdin.read()
    svg, found = re.subn(r"<svg ", f'<svg role="img" aria-label="{TITLE}" ', svg, count=1)
    places = re.findall(r"translateX\(-(\d+)px\)", svg)
    if not found or not places:
        sys.exit("this is no picture of svg-term-cli")
    # Who has asked for less motion sees the last frame.
    last = max(int(place) for place in places)
    rest = f"g[style*=animation]{{animation:none!important;transform:translateX(-{last}px)}}"
    svg = svg.replace("</style>", f"@media(prefers-reduced-motion:reduce){{{rest}}}</style>", 1)
    sys.stdout.write(svg if svg.endswith("\n") else svg + "\n")


main()
