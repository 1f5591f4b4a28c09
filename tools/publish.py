"""Pushes the images and the charts of `make release` to a registry, with the digests in target/IMAGES. Arguments are the project's name
there, such as registry.example.com/diana, and options of `skopeo copy`."""

import sys

import needs
from console import run
from layout import tags
from release import LAYOUTS


def main(registry, *options):
    for folder, name in LAYOUTS.items():
        for tag in tags(folder):
            source, destination = f"oci:{folder}:{tag}", f"docker://{registry}{name}:{tag}"
            run([needs.program("skopeo"), "copy", "--all", "--preserve-digests", *options, source, destination])


if __name__ == "__main__":
    main(*sys.argv[1:])
