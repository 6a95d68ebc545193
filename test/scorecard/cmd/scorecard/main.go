// Command scorecard builds the images of scorecard tests and runs them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/test/scorecard"
)

const usage = `usage: scorecard COMMAND FLAGS
  image     --ref=NAME:TAG --other=NAME:TAG --out=TAR  the image of the custom tests
  built-in  --out=TAR                                  that of the built-in tests
  run       --bundle=FOLDER --out=FOLDER [--config=FILE] [--selector=LABELS] [--untar=IMAGE] [--wait=30m]
            on KUBECONFIG's cluster; writes scorecard.json and scorecard.xml
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
		fmt.Fprintf(os.Stderr, "scorecard %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, args []string) error {
	r := scorecard.Run{Kubeconfig: os.Getenv("KUBECONFIG")}
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	ref := flags.String("ref", "", "")
	other := flags.String("other", "", "")
	out := flags.String("out", "", "")
	flags.StringVar(&r.Bundle, "bundle", "bundle", "")
	flags.StringVar(&r.Config, "config", "", "")
	flags.StringVar(&r.Selector, "selector", "", "")
	flags.StringVar(&r.Untar, "untar", "", "")
	flags.DurationVar(&r.Wait, "wait", 30*time.Minute, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("--out is required")
	}
	switch command {
	case "image":
		written, err := scorecard.WriteImage(ctx, *out, *ref, *other)
		if err == nil {
			fmt.Printf("Wrote %s to %s\n", written, *out)
		}
		return err
	case "built-in":
		return scorecard.WriteBuiltIn(ctx, *out)
	case "run":
		return report(ctx, r, *out)
	}
	return fmt.Errorf("unknown command\n%s", usage)
}

// report prints scorecard's text output and writes the reports.
func report(ctx context.Context, r scorecard.Run, folder string) error {
	list, err := r.Do(ctx)
	for _, test := range list.Items {
		fmt.Println(test.MarshalText())
	}
	if err != nil {
		return err
	}
	if err := scorecard.WriteReports(list, folder); err != nil {
		return err
	}
	failed := scorecard.Failed(list)
	fmt.Printf("%d tests, %d failed; see also %s\n", len(list.Items), len(failed), filepath.Join(folder, "scorecard.xml"))
	switch {
	case len(list.Items) == 0:
		return errors.New("no test has these labels")
	case len(failed) > 0:
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}
