// Command render prints the output of kustomize for a folder.
package main

import (
	"fmt"
	"os"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: render FOLDER")
		os.Exit(2)
	}
	text, err := manifest.Text(os.Args[1], nil)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}
