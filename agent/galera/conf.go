package galera

import (
	"crypto/sha1" //nolint:gosec // the server stores passwords in this form
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/galera/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

// Private files.
const (
	configFile  = "server.cnf"
	createFile  = "create.cnf"  // for the creation of the database, without Galera
	recoverFile = "recover.cnf" // for the recovery of the position
	initFile    = "init.sql"
)

// providers are the places of Galera's library in images.
var providers = []string{"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so"}

// provider returns the path of Galera's library.
func provider() (string, error) {
	for _, path := range providers {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", driver.Errorf(driver.NotConfigured, "the image contains no Galera: %s does not exist", providers[0])
}

// environment returns additional variables of the server, and of the scripts that it runs.
func (s *Server) environment() []string { return []string{"TMPDIR=" + s.temporary()} }

// weight is how much a member counts for a majority.
type weight int

const (
	noWeight  weight = 0
	allWeight weight = 1
)

func (w weight) String() string { return "pc.weight=" + strconv.Itoa(int(w)) }

// weightIn returns the weight of a member until it has all data. An even sum would survive the loss of no
// more members than the one below, so a start that fails would cost the others their majority.
func weightIn(cluster view) weight {
	if cluster.weight%2 == 1 {
		return noWeight
	}
	return allWeight
}

// clearTemporary creates the folders of the server, and removes temporary files of an earlier one.
func (s *Server) clearTemporary() error {
	if err := os.RemoveAll(s.temporary()); err != nil {
		return err
	}
	for _, folder := range []string{s.folder(), s.temporary()} {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// writeConfiguration writes the file that the server reads.
func (s *Server) writeConfiguration(name string, w weight) error {
	library, err := provider()
	if err != nil {
		return err
	}
	_, err = s.Private.Replace(name, []byte(s.configuration(s.replication(library, w))))
	return err
}

// configuration returns a file with the settings of the user and additional ones.
func (s *Server) configuration(additional [][2]string) string {
	all := [][2]string{
		{"datadir", s.folder()},
		{"tmpdir", s.temporary()},
		{"socket", s.Private.Path(socket)},
		{"pid_file", s.Private.Path("mariadb.pid")},
		{"port", strconv.Itoa(int(s.config.Port))},
		{"default_storage_engine", "InnoDB"},
		{"skip_name_resolve", "ON"}, // a name server that does not answer would delay clients
	}
	for _, key := range slices.Sorted(maps.Keys(s.config.Settings)) {
		if !settings.IsOption(key) {
			all = append(all, [2]string{key, s.config.Settings[key]})
		}
	}
	lines := []string{"[mariadbd]"}
	for _, entry := range append(all, additional...) {
		lines = append(lines, entry[0]+"="+quote(entry[1]))
	}
	// The root file system is read-only.
	lines = append(lines, "[sst]", "sst-log-archive=0")
	return strings.Join(lines, "\n") + "\n"
}

// replication returns the settings of a member.
func (s *Server) replication(library string, w weight) [][2]string {
	all := [][2]string{
		{"init_file", s.Private.Path(initFile)},
		{"binlog_format", "ROW"},
		{"innodb_autoinc_lock_mode", "2"},
		{"innodb_flush_log_at_trx_commit", "1"},
		{"sync_binlog", "1"}, // with log_bin, a transaction is durable when its log is
		{"wsrep_on", "ON"},
		{"wsrep_provider", library},
		{"wsrep_provider_options", s.options(w)},
		{"wsrep_node_name", s.Name},
		{"wsrep_node_address", bracketed(s.address)},
		{"wsrep_sst_method", "mariabackup"},
		{"wsrep_sst_auth", agentUser + ":" + s.localPassword},
	}
	if s.config.ListenAddresses != "*" {
		all = append(all, [2]string{"bind_address", s.config.ListenAddresses})
	}
	return all
}

// options returns the options of Galera's library. pc.recovery would begin a cluster without the operator.
func (s *Server) options(w weight) string {
	all := []string{
		"gmcast.listen_addr=tcp://" + address(s.address, settings.GroupPort),
		"ist.recv_bind=tcp://" + address(s.address, settings.TransferPort),
		"pc.recovery=no",
		w.String(),
	}
	for _, key := range slices.Sorted(maps.Keys(s.config.Settings)) {
		if settings.IsOption(key) {
			all = append(all, key+"="+s.config.Settings[key])
		}
	}
	return strings.Join(all, ";")
}

// bracketed returns an address as it is written in URLs.
func bracketed(address string) string {
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		return "[" + address + "]"
	}
	return address
}

// quote returns a value that the server reads as it is.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// writeInit writes the statements that the server executes before it accepts connections. They are not
// replicated.
func (s *Server) writeInit(create bool) error {
	lines := []string{
		fmt.Sprintf("CREATE OR REPLACE USER '%s'@'localhost' IDENTIFIED BY PASSWORD '%s';", agentUser, hashOf(s.localPassword)),
		fmt.Sprintf("GRANT ALL ON *.* TO '%s'@'localhost' WITH GRANT OPTION;", agentUser),
	}
	if create {
		password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
		if err != nil {
			return err
		}
		lines = append(lines, "DELETE FROM mysql.global_priv WHERE User IN ('', 'root');", "FLUSH PRIVILEGES;")
		for _, a := range accounts {
			lines = append(lines, fmt.Sprintf("CREATE OR REPLACE USER %s IDENTIFIED BY PASSWORD '%s';", a, hashOf(password)))
		}
		lines = append(lines, "GRANT ALL ON *.* TO 'root'@'localhost' WITH GRANT OPTION;", "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;")
	}
	_, err := s.Private.Replace(initFile, []byte(strings.Join(lines, "\n")+"\n"))
	return err
}

// account is a user at a host.
type account struct{ user, host string }

// String returns the account as it is written in SQL.
func (a account) String() string { return "'" + a.user + "'@'" + a.host + "'" }

// accounts have the password of the Secret.
var accounts = []account{{"root", "localhost"}, {"root", "%"}, {agentUser, "%"}}

// hashOf returns a password as the server stores it, see mysql_native_password.
func hashOf(password string) string {
	first := sha1.Sum([]byte(password)) //nolint:gosec // see above
	second := sha1.Sum(first[:])        //nolint:gosec // see above
	return "*" + strings.ToUpper(hex.EncodeToString(second[:]))
}
