// Command image writes Go programs of this module as a container image in a tar file, without a
// container engine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/stateful-operator/stateful-operator/test/run/program"
)

func main() {
	var p program.Program
	flag.StringVar(&p.Package, "package", ".", "`package` of the program")
	flag.Func("with", "`package` of another program in the image; may be repeated", func(source string) error {
		p.With = append(p.With, source)
		return nil
	})
	flag.StringVar(&p.Ref, "ref", "", "`name[:tag]` of the image")
	flag.StringVar(&p.User, "user", "65532:65532", "`uid:gid` of the container")
	flag.StringVar(&p.Tar, "out", "", "tar `file` to write")
	flag.Parse()
	if p.Ref == "" || p.Tar == "" {
		fmt.Fprintln(os.Stderr, "image: --ref and --out are required")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ref, err := p.Write(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("Wrote %s to %s\n", ref, p.Tar)
}
