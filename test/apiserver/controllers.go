package apiserver

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ControllerManager returns the path of kube-controller-manager, next to the API server's binary.
func ControllerManager() string {
	return filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
}

// StartControllers starts these controllers of Kubernetes with a kubeconfig file, and returns a
// function that kills them. They write into the folder of that file.
func StartControllers(kubeconfig string, log io.Writer, names ...string) (stop func(), err error) {
	command := exec.Command(ControllerManager(), "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--cert-dir", filepath.Dir(kubeconfig), "--kube-api-qps=1000", "--kube-api-burst=1000", "--controllers="+strings.Join(names, ","))
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	}, nil
}
