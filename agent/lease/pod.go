package lease

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Folders are the folders of the volumes that the operator adds to a pod. A pod cannot configure others.
type Folders struct {
	Fencing string // of the pod's identity and its credentials
	Signal  string // of the start grant
}

// DefaultFolders returns the folders in a container.
func DefaultFolders() Folders { return Folders{Fencing: "/var/run/fencing", Signal: "/var/run/signal"} }

// The files in the folder of fencing.
const (
	tokenFile     = "token"
	caFile        = "ca.crt"
	namespaceFile = "namespace"
	podNameFile   = "pod-name"
	podUIDFile    = "pod-uid"
)

// pod is the pod of this process.
type pod struct{ namespace, name, uid string }

// identity returns the holderIdentity of the pod.
func (p pod) identity() string { return p.name + "_" + p.uid }

func (f Folders) readPod() (pod, error) {
	var p pod
	for _, file := range []struct {
		name  string
		value *string
	}{{namespaceFile, &p.namespace}, {podNameFile, &p.name}, {podUIDFile, &p.uid}} {
		text, err := os.ReadFile(filepath.Join(f.Fencing, file.name))
		if err != nil {
			return pod{}, err
		}
		*file.value = strings.TrimSpace(string(text))
		if *file.value == "" {
			return pod{}, fmt.Errorf("file %s is empty", filepath.Join(f.Fencing, file.name))
		}
	}
	return p, nil
}
