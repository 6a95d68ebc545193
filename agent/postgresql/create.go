package postgresql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// create creates an empty database.
func (s *Server) create(ctx context.Context) error {
	programs, err := s.installed(ctx, "")
	if err != nil {
		return err
	}
	c, err := s.credentials()
	if err != nil {
		return err
	}
	if err := s.setMark(beingCreated); err != nil {
		return err
	}
	if err := s.deleteData(); err != nil {
		return err
	}
	if err := s.initialize(ctx, programs, c); err != nil {
		return err
	}
	if err := s.launch(ctx, asPrivate); err != nil {
		return err
	}
	err = s.setRoles(ctx, c)
	if stopErr := s.end(fastLimit); err == nil {
		err = stopErr
	}
	if err != nil {
		return err
	}
	return s.removeMark()
}

func (s *Server) initialize(ctx context.Context, programs installation, c credentials) error {
	const file = "initdb-password"
	if _, err := s.Private.Replace(file, []byte(c.superuser+"\n")); err != nil {
		return err
	}
	defer os.Remove(s.Private.Path(file))
	args := []string{"--pgdata=" + s.config.DataDir, "--username=postgres", "--pwfile=" + s.Private.Path(file),
		"--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--data-checksums"}
	locale := processes.Inherited("LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE")
	if len(locale) == 0 {
		args = append(args, "--locale=C")
	}
	cmd := s.tool(ctx, programs.path("initdb"), args...)
	cmd.Env = append(processes.Inherited("PATH", "TZ"), append(locale, "HOME="+string(s.Private))...)
	user, err := s.userEntry()
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, user...)
	_, err = processes.Output(cmd)
	return err
}

// libraries are the folders in which the upstream image has libnss_wrapper.so.
var libraries = []string{"/usr/lib/libnss_wrapper.so", "/usr/lib/*/libnss_wrapper.so", "/lib/*/libnss_wrapper.so"}

// userEntry returns variables for initdb, which requires that the user has an entry in /etc/passwd.
// Without one it uses a library that the upstream image contains for this purpose.
func (s *Server) userEntry() ([]string, error) {
	uid, gid := os.Getuid(), os.Getgid()
	text, err := os.ReadFile("/etc/passwd")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == fmt.Sprint(uid) {
			return nil, nil
		}
	}
	for _, pattern := range libraries {
		found, _ := filepath.Glob(pattern) // the patterns are correct
		if len(found) == 0 {
			continue
		}
		passwd, group := s.Private.Path("passwd"), s.Private.Path("group")
		_, err := s.Private.Replace("passwd", fmt.Appendf(nil, "postgres:x:%d:%d:PostgreSQL:%s:/bin/false\n", uid, gid, string(s.Private)))
		if err != nil {
			return nil, err
		}
		_, err = s.Private.Replace("group", fmt.Appendf(nil, "postgres:x:%d:\n", gid))
		return []string{"LD_PRELOAD=" + found[0], "NSS_WRAPPER_PASSWD=" + passwd, "NSS_WRAPPER_GROUP=" + group}, err
	}
	return nil, driver.Errorf(driver.NotConfigured,
		"user %d has no entry in /etc/passwd, which initdb requires: set runAsUser to a user of the image, or add libnss_wrapper to the image", uid)
}
