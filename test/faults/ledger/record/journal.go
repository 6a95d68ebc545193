package record

// Kinds of lines in a journal.
const (
	// Start and End are written by a process 1, Serve and Served by its server. A killed process wrote
	// no last line.
	Start  = "start"
	End    = "end"
	Serve  = "serve"
	Served = "served"
	// Command is a hook's command on arrival, and Done its end with its outcome.
	Command = "command"
	Done    = "done"
	// Asked is a status or sequence command, which changes nothing.
	Asked = "asked"
	// Primary is a server that becomes primary, or that starts a newer epoch as primary. It is written
	// before the first client is served. Ceased is written after the last one.
	Primary = "primary"
	Ceased  = "ceased"
	// Meets has in Other a run that still held its lock, and so was primary, when this one became
	// primary. It needs no clock.
	Meets = "meets"
	// Over has in Other a run that was primary, wrote no Ceased, and has ended.
	Over = "over"
	// Established is an epoch that enough followers have joined. From now on it has entries.
	Established = "established"
	// Joined is a follower that has promised to follow no older epoch.
	Joined = "joined"
	// Cut is a copy that discarded its entries from Index on, to follow.
	Cut = "cut"
	// Ack is an acknowledged append. It is written before the response.
	Ack = "ack"
)

// JournalSuffix and LockSuffix are the suffixes of a pod's two files in the folder of the journals: the
// journal, and the file on which its server holds an exclusive lock while it is primary.
const (
	JournalSuffix = ".journal"
	LockSuffix    = ".primary"
)

// Line is one line of a journal.
type Line struct {
	At       int64  `json:"at"`   // by the machine's monotonic clock, in nanoseconds
	Wall     string `json:"wall"` // for human readers
	What     string `json:"what"`
	Run      string `json:"run"` // each process is a run
	Pod      string `json:"pod"`
	UID      string `json:"uid,omitempty"` // of the pod
	Epoch    uint64 `json:"epoch,omitempty"`
	Index    uint64 `json:"index,omitempty"`
	Position uint64 `json:"position,omitempty"` // of an append among the appends
	Client   string `json:"client,omitempty"`
	Request  string `json:"request,omitempty"`
	Other    string `json:"other,omitempty"`
	Text     string `json:"text,omitempty"`
}
