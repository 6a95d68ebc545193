// Command bundle builds images of bundle/ and catalog/, and generates the catalog from bundles.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/stateful-operator/stateful-operator/test/bundle"
)

const usage = `usage: bundle COMMAND FLAGS
  image          --folder=bundle --ref=NAME:TAG --out=TAR
  catalog        --template=FILE --opm=PROGRAM --out=FILE NAME=IMAGE=FOLDER…
  catalog-image  --folder=catalog --ref=NAME:TAG --out=TAR --opm=PROGRAM --probe=PROGRAM
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bundle %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, args []string) error {
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	folder := flags.String("folder", "", "")
	ref := flags.String("ref", "", "")
	out := flags.String("out", "", "")
	template := flags.String("template", "", "")
	opm := flags.String("opm", "", "")
	probe := flags.String("probe", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("--out is required")
	}
	switch command {
	case "image":
		return bundle.WriteImage(*folder, *ref, *out)
	case "catalog-image":
		return bundle.WriteCatalogImage(ctx, *folder, *ref, *out, bundle.Programs{OPM: *opm, Probe: *probe})
	case "catalog":
		versions, err := versionsOf(flags.Args())
		if err != nil {
			return err
		}
		text, err := bundle.Render(ctx, *opm, *template, versions...)
		if err != nil {
			return err
		}
		return os.WriteFile(*out, text, 0o644)
	}
	return fmt.Errorf("unknown command\n%s", usage)
}

// versionsOf parses arguments of the form present=registry/name:tag=folder.
func versionsOf(args []string) ([]bundle.Version, error) {
	var versions []bundle.Version
	for _, arg := range args {
		parts := strings.Split(arg, "=")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is not NAME=IMAGE=FOLDER", arg)
		}
		versions = append(versions, bundle.Version{Name: parts[0], Image: parts[1], Folder: parts[2]})
	}
	return versions, nil
}
