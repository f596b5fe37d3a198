"""Attacks on the kernel's walls as plain Python, as data: what a script could do that got out of the step language.

Each sets `got` to what it obtained: the marker, or @WORKED@ once a call has worked that must not. The control runs it in
the same process without the walls, where it must succeed. `needs` says what a machine may lack for that: "root", or a
feature that kernels are built or set up without ("kernel").

Tokens, beside those of attempts.py: @PID@ the server's process, @REMOTE@ where the marker lies in its memory, @TCP@, @UDP@,
@UNIX@, @ABSTRACT@ its doors, @SHARED@ its shared memory, @LEFT@ a descriptor of the marker's file that was open before,
@FOLDER@ where the marker's files lie, @LINK@ a symbolic link to it. `c` is the C library, `raw(name, …)` a system call;
`checked` makes an OSError of -1.

Longer than 300 lines because it is data: one attack a row.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Numbers of system calls on x86_64 and aarch64, of those that the C library has no function for.
NUMBERS = {
    "openat2": (437, 437),
    "name_to_handle_at": (303, 264),
    "memfd_create": (319, 279),
    "userfaultfd": (323, 282),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "move_pages": (279, 239),
    "kcmp": (312, 272),
    "ptrace": (101, 117),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "clone3": (435, 435),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "execveat": (322, 281),
    "socket": (41, 198),
    "fsopen": (430, 430),
    "open_tree": (428, 428),
    "personality": (135, 92),
    "landlock_create_ruleset": (444, 444),
    "seccomp": (317, 277),
    "clone": (56, 220),
    "gettid": (186, 178),
}


@dataclass(frozen=True, slots=True)
class Direct:
    """One attack. `dies`: it ends the process that tries it, so that it gets one of its own."""

    id: str
    source: str
    needs: str = ""
    dies: bool = False


DIRECT: list[Direct] = []


def _rows(needs: str = "", dies: bool = False, **sources: str) -> None:
    DIRECT.extend(Direct(name, source.strip("\n"), needs, dies) for name, source in sources.items())


# --- reading ---------------------------------------------------------------------------------------------------------
_rows(
    read_open='got = open("@FILE@").read()',
    read_os_open='import os\ngot = os.read(os.open("@FILE@", os.O_RDONLY), 99)',
    read_fileio='import io\ngot = io.FileIO("@FILE@").read()',
    read_pathlib='import pathlib\ngot = pathlib.Path("@FILE@").read_text()',
    read_link='got = open("@LINK@").read()',
    read_dots='got = open("/usr/lib/../..@FILE@").read()',
    read_proc_root='got = open("/proc/self/root@FILE@").read()',
    read_proc_task_root='import os\ngot = open(f"/proc/{os.getpid()}/task/{os.getpid()}/root@FILE@").read()',
    read_server_root='got = open("/proc/@PID@/root@FILE@").read()',
    read_from_a_folder="""
import os
folder = os.open("@FOLDER@", os.O_PATH)
got = os.read(os.open("file.txt", os.O_RDONLY, dir_fd=folder), 99)
""",
    read_after_chdir='import os\nos.chdir("@FOLDER@")\ngot = open("file.txt").read()',
    read_from_the_working_directory='got = open("../" * 9 + "@FILE@"[1:]).read()',
    read_libc_fopen="""
c.fopen.restype = ctypes.c_void_p
opened, text = c.fopen(b"@FILE@", b"r"), ctypes.create_string_buffer(99)
if opened:
    c.fread(text, 1, 98, ctypes.c_void_p(opened))
got = text.value
""",
    read_openat2="""
import os
how = (ctypes.c_uint64 * 3)(0, 0, 0)
got = os.read(raw("openat2", -100, b"@FILE@", how, 24), 99)
""",
    read_open_o_path_again="""
import os
pointed = os.open("@FILE@", os.O_PATH)
got = open(f"/proc/self/fd/{pointed}").read()
""",
    read_numpy='import numpy as np\ngot = bytes(np.fromfile("@FILE@", np.uint8))',
    read_numpy_memmap='import numpy as np\ngot = bytes(np.memmap("@FILE@", np.uint8, mode="r"))',
    read_mmap="""
import mmap, os
got = mmap.mmap(os.open("@FILE@", os.O_RDONLY), 0, prot=mmap.PROT_READ)[:]
""",
    read_sqlite='import sqlite3\nsqlite3.connect("@OUT@.db").execute("create table a (b)")\ngot = "@WORKED@"',
    read_passwd='got = "@WORKED@" if "root:" in open("/etc/passwd").read() else None',
    read_passwd_slashes='got = "@WORKED@" if "root:" in open("//etc/./passwd").read() else None',
    read_passwd_through_the_library='got = "@WORKED@" if "root:" in open("/usr/lib/../../etc/passwd").read() else None',
    read_users='import pwd\ngot = "@WORKED@" if len(pwd.getpwall()) else None',
    read_server_command='got = "@WORKED@" if open("/proc/@PID@/cmdline").read() else None',
    read_server_maps='got = "@WORKED@" if open("/proc/@PID@/maps").read() else None',
    read_own_maps='got = "@WORKED@" if open("/proc/self/maps").read() else None',
    read_server_program='import os\ngot = "@WORKED@" if os.readlink("/proc/@PID@/exe") else None',
    read_server_directory='import os\ngot = "@WORKED@" if os.readlink("/proc/@PID@/cwd") else None',
    list_server_descriptors='import os\ngot = "@WORKED@" if os.listdir("/proc/@PID@/fd") else None',
    list_folder='import os\ngot = "@WORKED@" if "file.txt" in os.listdir("@FOLDER@") else None',
    list_root='import os\ngot = "@WORKED@" if os.listdir("/") else None',
    list_processes='import os\ngot = "@WORKED@" if "@PID@" in os.listdir("/proc") else None',
    list_working_directory='import os\ngot = "@WORKED@" if os.listdir(".") else None',
    list_by_glob='import glob\ngot = "@WORKED@" if glob.glob("@FOLDER@/*") else None',
    read_left_open="""
import os
got = b""
for fd in range(3, 300):
    try:
        got += os.pread(fd, 99, 0)
    except OSError:
        pass
""",
    read_shared_memory='got = open("/dev/shm/@SHARED@").read()',
    read_shared_memory_of_libc='import os\ngot = os.read(checked(c.shm_open(b"/@SHARED@", 0, 0)), 99)',
    read_in_a_thread="""
import threading
found = []
def look():
    try:
        found.append(open("@FILE@").read())
    except OSError:
        pass
thread = threading.Thread(target=look)
thread.start()
thread.join()
got = str(found)
""",
    read_in_a_callback="""
import jax, jax.numpy as jnp
found = []
def look(v):
    found.append(open("@FILE@").read())
    return v
try:
    jax.pure_callback(look, jnp.ones(2), jnp.ones(2)).block_until_ready()
except jax.errors.JaxRuntimeError:
    pass
got = str(found)
""",
    read_in_a_finalizer="""
found = []
class Late:
    def __del__(self):
        found.append(open("@FILE@").read())
import sys
sys.unraisablehook = lambda *_: None
Late()
got = str(found)
""",
    read_in_a_signal_handler="""
import os, signal
found = []
def look(*_):
    try:
        found.append(open("@FILE@").read())
    except OSError:
        pass
before = signal.signal(signal.SIGUSR2, look)
os.kill(os.getpid(), signal.SIGUSR2)
signal.signal(signal.SIGUSR2, before)
got = str(found)
""",
)

# --- changing --------------------------------------------------------------------------------------------------------
_rows(
    write_open='open("@OUT@", "w").close()\ngot = "@WORKED@"',
    write_append='open("@FILE@", "a").close()\ngot = "@WORKED@"',
    write_update='open("@FILE@", "r+").close()\ngot = "@WORKED@"',
    write_libc_creat='got = "@WORKED@" if c.creat(b"@OUT@", 0o600) >= 0 else None',
    write_unnamed="""
import os
os.open("@FOLDER@", os.O_TMPFILE | os.O_RDWR)
got = "@WORKED@"
""",
    write_temporary='import tempfile\ntempfile.TemporaryFile()\ngot = "@WORKED@"',
    write_dev_shm='open("/dev/shm/carry-lab-out", "w").close()\nimport os\nos.unlink("/dev/shm/carry-lab-out")\ngot = "@WORKED@"',
    write_in_the_working_directory='import os\nos.mkdir("carry-lab-out")\nos.rmdir("carry-lab-out")\ngot = "@WORKED@"',
    write_own_memory_file='f = open("/proc/self/mem", "r+b", 0)\ngot = "@WORKED@"',
    write_own_name='open("/proc/self/comm", "w").write("x")\ngot = "@WORKED@"',
    change_folder='import os\nos.mkdir("@OUT@")\ngot = "@WORKED@"',
    change_link='import os\nos.symlink("@FILE@", "@OUT@")\ngot = "@WORKED@"',
    change_hard_link='import os\nos.link("@FILE@", "@OUT@")\ngot = "@WORKED@"',
    change_name='import os\nos.rename("@FILE@", "@FILE@.moved")\nos.rename("@FILE@.moved", "@FILE@")\ngot = "@WORKED@"',
    change_length='import os\nos.truncate("@FILE@", 99)\nos.truncate("@FILE@", @LEN@)\ngot = "@WORKED@"',
    change_mode='import os\nos.chmod("@FILE@", 0o644)\ngot = "@WORKED@"',
    change_times='import os\nos.utime("@FILE@")\ngot = "@WORKED@"',
    change_owner='import os\nos.chown("@FILE@", os.getuid(), -1)\ngot = "@WORKED@"',
    change_pipe='import os\nos.mkfifo("@OUT@")\ngot = "@WORKED@"',
    change_empty_folder='import os\nos.rmdir("@FOLDER@/empty")\nos.mkdir("@FOLDER@/empty")\ngot = "@WORKED@"',
)

# --- the environment and other memory --------------------------------------------------------------------------------
_rows(
    environment='import os\ngot = os.environ["CARRY_LAB_PLANTED"]',
    environment_of_libc='c.getenv.restype = ctypes.c_char_p\ngot = c.getenv(b"CARRY_LAB_PLANTED")',
    environment_of_the_start='got = open("/proc/self/environ").read()',
    environment_of_the_parent='import os\ngot = open(f"/proc/{os.getppid()}/environ").read()',
    environment_of_the_server='got = open("/proc/@PID@/environ").read()',
    memory_of_the_server='f = open("/proc/@PID@/mem", "rb", 0)\nf.seek(@REMOTE@)\ngot = f.read(99)',
    memory_by_process_vm_readv="""
here = ctypes.create_string_buffer(99)
mine = (ctypes.c_size_t * 2)(ctypes.addressof(here), 60)
theirs = (ctypes.c_size_t * 2)(@REMOTE@, 60)
raw("process_vm_readv", @PID@, mine, 1, theirs, 1, 0)
got = here.raw
""",
    memory_by_process_vm_writev="""
here = ctypes.create_string_buffer(9)
raw("process_vm_readv", @PID@, (ctypes.c_size_t * 2)(ctypes.addressof(here), 1), 1, (ctypes.c_size_t * 2)(@REMOTE@, 1), 1, 0)
raw("process_vm_writev", @PID@, (ctypes.c_size_t * 2)(ctypes.addressof(here), 1), 1, (ctypes.c_size_t * 2)(@REMOTE@, 1), 1, 0)
got = "@WORKED@"
""",
)
_rows(
    "kernel",
    memory_pages_of_the_server='raw("move_pages", @PID@, 0, None, None, None, 0)\ngot = "@WORKED@"',
    memory_compared='import os\nraw("kcmp", os.getpid(), @PID@, 1, 0, 0)\ngot = "@WORKED@"',
    descriptor_of_the_server='pid = raw("pidfd_open", @PID@, 0)\nraw("pidfd_getfd", pid, 0, 0)\ngot = "@WORKED@"',
)

_rows(
    dies=True,  # for its end lets go of what it traces
    memory_by_ptrace='raw("ptrace", 0x4206, @PID@, 0, 0)\ngot = "@WORKED@"',
    memory_by_ptrace_of_the_parent='import os\nraw("ptrace", 0x4206, os.getppid(), 0, 0)\ngot = "@WORKED@"',
)

# --- the network -----------------------------------------------------------------------------------------------------
_rows(
    connect_tcp='import socket\nsocket.create_connection(("127.0.0.1", @TCP@)).close()\ngot = "@WORKED@"',
    connect_http="""
import http.client, urllib.error, urllib.request
try:
    urllib.request.urlopen("http://127.0.0.1:@TCP@/")
except (http.client.HTTPException, ConnectionResetError):
    got = "@WORKED@"
""",
    connect_udp="""
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", @UDP@))
got = "@WORKED@"
""",
    connect_unix='import socket\nsocket.socket(socket.AF_UNIX).connect("@UNIX@")\ngot = "@WORKED@"',
    connect_abstract='import socket\nsocket.socket(socket.AF_UNIX).connect("\\0@ABSTRACT@")\ngot = "@WORKED@"',
    connect_raw_call='raw("socket", 2, 2, 0)\ngot = "@WORKED@"',
    connect_netlink='import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\ngot = "@WORKED@"',
    connect_pair='import socket\nsocket.socketpair()\ngot = "@WORKED@"',
    connect_in_a_thread="""
import socket, threading
found = []
def go():
    try:
        socket.create_connection(("127.0.0.1", @TCP@)).close()
        found.append("@WORKED@")
    except OSError:
        pass
thread = threading.Thread(target=go)
thread.start()
thread.join()
got = str(found)
""",
    connect_in_a_callback="""
import jax, jax.numpy as jnp, socket
found = []
def go(v):
    socket.create_connection(("127.0.0.1", @TCP@)).close()
    found.append("@WORKED@")
    return v
try:
    jax.pure_callback(go, jnp.ones(3), jnp.ones(3)).block_until_ready()
except jax.errors.JaxRuntimeError:
    pass
got = str(found)
""",
    listen_tcp='import socket\nsocket.create_server(("127.0.0.1", 0)).close()\ngot = "@WORKED@"',
)
_rows(
    "kernel",
    connect_raw_socket='import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)\ngot = "@WORKED@"',
    connect_io_uring='raw("io_uring_setup", 1, (ctypes.c_uint32 * 32)())\ngot = "@WORKED@"',
)

# --- programs and processes ------------------------------------------------------------------------------------------
_rows(
    run_subprocess='import subprocess\ngot = subprocess.check_output(["cat", "@FILE@"])',
    run_system='import os\ngot = "@WORKED@" if os.system("true") == 0 else None',
    run_popen='import os\ngot = os.popen("cat @FILE@").read()',
    run_posix_spawn='import os\nos.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)\ngot = "@WORKED@"',
    run_libc_system='got = "@WORKED@" if c.system(b"true") == 0 else None',
    run_fork='import os\npid = os.fork()\npid or os._exit(0)\nos.waitpid(pid, 0)\ngot = "@WORKED@"',
    run_forkpty='import os\npid, fd = os.forkpty()\npid or os._exit(0)\nos.waitpid(pid, 0)\ngot = "@WORKED@"',
    run_raw_clone="""
import os
pid = raw("clone", 17, 0, 0, 0, 0)
pid or os._exit(0)
os.waitpid(pid, 0)
got = "@WORKED@"
""",
    run_raw_clone3="""
import os
pid = raw("clone3", (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17), 88)
pid or os._exit(0)
os.waitpid(pid, 0)
got = "@WORKED@"
""",
    run_multiprocessing="""
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=int)
process.start()
process.join()
got = "@WORKED@"
""",
)
_rows(
    dies=True,
    run_exec='import os\nos.execv("/bin/cat", ["cat", "@FILE@"])',
    run_exec_of_libc='args = (ctypes.c_char_p * 3)(b"cat", b"@FILE@", None)\nc.execve(b"/bin/cat", args, None)',
    run_exec_of_a_descriptor="""
import os
fd = os.open("/bin/cat", os.O_RDONLY)
raw("execveat", fd, b"", (ctypes.c_char_p * 3)(b"cat", b"@FILE@", None), None, 0x1000)
""",
)

# --- signals ---------------------------------------------------------------------------------------------------------
_rows(
    signal_server='import os, signal\nos.kill(@PID@, signal.SIGUSR1)\ngot = "@WORKED@"',
    signal_parent='import os, signal\nos.kill(os.getppid(), signal.SIGUSR1)\ngot = "@WORKED@"',
    signal_everybody='import os\nos.kill(-1, 0)\ngot = "@WORKED@"',
    signal_group='import os\nos.killpg(os.getpgid(@PID@), 0)\ngot = "@WORKED@"',
    signal_own_group='import os\nos.kill(0, 0)\ngot = "@WORKED@"',
    signal_tkill='raw("tkill", @PID@, 10)\ngot = "@WORKED@"',
    signal_tgkill='raw("tgkill", @PID@, @PID@, 10)\ngot = "@WORKED@"',
    signal_queue="""
info = (ctypes.c_int32 * 32)(10, 0, -1)
raw("rt_sigqueueinfo", @PID@, 10, info)
got = "@WORKED@"
""",
    signal_by_pidfd='fd = raw("pidfd_open", @PID@, 0)\nraw("pidfd_send_signal", fd, 10, None, 0)\ngot = "@WORKED@"',
    signal_by_owner_of_a_channel="""
import fcntl
fcntl.fcntl(1, fcntl.F_SETOWN, @PID@)
got = "@WORKED@"
""",
    signal_in_a_thread="""
import os, threading
found = []
def go():
    try:
        os.kill(@PID@, 10)
        found.append("@WORKED@")
    except OSError:
        pass
thread = threading.Thread(target=go)
thread.start()
thread.join()
got = str(found)
""",
)

# --- the kernel's other doors ----------------------------------------------------------------------------------------
_rows(
    kernel_memfd='raw("memfd_create", b"x", 0)\ngot = "@WORKED@"',
    kernel_shared_pages='import mmap\nmmap.mmap(-1, 4096)\ngot = "@WORKED@"',
    kernel_inotify='raw("inotify_init1", 0)\ngot = "@WORKED@"',
    kernel_priority='import os\nos.setpriority(os.PRIO_PROCESS, @PID@, 19)\ngot = "@WORKED@"',
    kernel_affinity='import os\nos.sched_setaffinity(@PID@, os.sched_getaffinity(@PID@))\ngot = "@WORKED@"',
    kernel_limits_of_the_server="""
import resource
limit = resource.prlimit(@PID@, resource.RLIMIT_CORE)
got = "@WORKED@"
""",
    kernel_own_limits='import resource\nresource.setrlimit(resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK))\ngot = "@WORKED@"',
    kernel_dumpable='got = "@WORKED@" if c.prctl(4, 1, 0, 0, 0) == 0 else None',
    kernel_outlive_the_parent='got = "@WORKED@" if c.prctl(1, 0, 0, 0, 0) == 0 else None',
    kernel_personality='raw("personality", 0)\ngot = "@WORKED@"',
    kernel_group='import os\nos.setpgid(0, 0)\ngot = "@WORKED@"',
)
_rows(
    "kernel",
    kernel_userfaultfd='raw("userfaultfd", 1)\ngot = "@WORKED@"',
    kernel_keys='raw("add_key", b"user", b"x", b"y", 1, -2)\ngot = "@WORKED@"',
    kernel_bpf='raw("bpf", 0, (ctypes.c_uint32 * 16)(2, 4, 4, 1), 64)\ngot = "@WORKED@"',
    kernel_perf='raw("perf_event_open", (ctypes.c_uint32 * 32)(1, 128, 0), 0, -1, -1, 0)\ngot = "@WORKED@"',
    kernel_shmget='raw("shmget", 0, 4096, 0o1600)\ngot = "@WORKED@"',
    kernel_msgget='raw("msgget", 0, 0o1600)\ngot = "@WORKED@"',
    kernel_semget='raw("semget", 0, 1, 0o1600)\ngot = "@WORKED@"',
    kernel_mq='q = ctypes.CDLL("librt.so.1", use_errno=True)\ngot = "@WORKED@" if q.mq_open(b"/carry-lab-q", 0o100 | 2, 0o600, None) >= 0 else None\nq.mq_unlink(b"/carry-lab-q")',
    kernel_landlock='raw("landlock_create_ruleset", None, 0, 1)\ngot = "@WORKED@"',
    kernel_seccomp='raw("seccomp", 2, 0, (ctypes.c_uint32 * 1)(0x7FFF0000))\ngot = "@WORKED@"',
)
_rows(
    "root",
    write_in_the_library="""
import jax, os
path = os.path.join(os.path.dirname(jax.__file__), "carry_lab_planted.py")
open(path, "w").close()
os.unlink(path)
got = "@WORKED@"
""",
    kernel_chroot="""
import os
here = os.open("/", os.O_RDONLY)
os.chroot("@FOLDER@")
os.fchdir(here)
os.chroot(".")
got = "@WORKED@"
""",
    kernel_uid='import os\nos.setresuid(0, 0, 0)\ngot = "@WORKED@"',
    kernel_mount='raw_mount = c.mount(b"none", b"@FOLDER@/empty", b"tmpfs", 0, None)\ngot = "@WORKED@" if raw_mount == 0 and c.umount(b"@FOLDER@/empty") == 0 else None',
    kernel_fsopen='raw("fsopen", b"tmpfs", 0)\ngot = "@WORKED@"',
    kernel_open_tree='raw("open_tree", -100, b"/", 1)\ngot = "@WORKED@"',
    kernel_host_name='import socket\nsocket.sethostname(socket.gethostname())\ngot = "@WORKED@"',
    kernel_device='import os\nos.mknod("@OUT@", 0o020600, os.makedev(1, 3))\ngot = "@WORKED@"',
    kernel_handle="""
handle = (ctypes.c_uint32 * 40)(128)
raw("name_to_handle_at", -100, b"@FILE@", handle, (ctypes.c_int * 1)(), 0)
got = "@WORKED@"
""",
    kernel_fanotify='raw("fanotify_init", 0, 0)\ngot = "@WORKED@"',
)
_rows(
    "kernel",
    dies=True,
    kernel_user_namespace='got = "@WORKED@" if c.unshare(0x10000000) == 0 else None',
    kernel_namespaces='got = "@WORKED@" if c.unshare(0x40020000) == 0 else None',
    kernel_setns='import os\nfd = os.open("/proc/@PID@/ns/net", os.O_RDONLY)\ngot = "@WORKED@" if c.setns(fd, 0) == 0 else None',
)

# --- machine code (x86_64) -------------------------------------------------------------------------------------------
_CODE = """
import mmap
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON, prot=7)
page.write(bytes.fromhex("{code}"))
run = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
value = run()
got = "@WORKED@" if value >= 0 else None
"""
#: socket(AF_INET, SOCK_DGRAM, 0), by the numbers of x86_64.
_SOCKET = "b829000000 bf02000000 be02000000 31d2 0f05 c3"
#: getppid() by the numbers of x32 and of i386: read as the other architecture's they would be something harmless.
_X32 = "b86e000040 0f05 c3"
_I386 = "53 b840000000 cd80 5b c3"
_rows("x86_64", machine_code_socket=_CODE.format(code=_SOCKET))
_rows("x86_64", dies=True, machine_code_i386=_CODE.format(code=_I386))
_rows("kernel", dies=True, machine_code_x32=_CODE.format(code=_X32))
