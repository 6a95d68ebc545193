// Command coder replaces the program of the sample, which cannot be pulled everywhere. It accepts any
// arguments, listens on the sample's port, and stores the name of its volume's first pod on the volume.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const project = "/home/coder/project"

func main() {
	host, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	first, err := firstOwner(host)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("this is %s, and its data belongs to %s", host, first)

	// Process 1 of a container has no default signal handlers.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		os.Exit(0)
	}()
	log.Fatal(http.ListenAndServe(":8443", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "this is %s, and its data belongs to %s\n", host, first)
	})))
}

// firstOwner returns the pod that wrote to the volume first.
func firstOwner(host string) (string, error) {
	file := filepath.Join(project, "first-owner")
	content, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(content), err
	}
	return host, os.WriteFile(file, []byte(host), 0o644)
}
