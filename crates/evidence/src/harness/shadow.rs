//! New files that are found before what runs the checks: a `unittest.py` of the repo, a runner in its `node_modules`.

use std::collections::BTreeSet;

/// Modules that every Python has.
const PYTHON: &str = "\
    abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect \
    builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
    compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum \
    errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath \
    getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib \
    imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale \
    logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt \
    multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os \
    ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
    posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri \
    random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve \
    shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable \
    sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit \
    tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing \
    unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound \
    wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Modules that run tests of Python, and what those stand on.
const PYTHON_TOOLS: &[&str] = &[
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
    "py",
    "nose",
    "nose2",
    "hypothesis",
    "coverage",
    "mock",
    "xdist",
    "execnet",
    "attr",
    "attrs",
    "tox",
    "nox",
    "behave",
    "sitecustomize",
    "usercustomize",
    "_distutils_hack",
    "pkg_resources",
    "setuptools",
    "pip",
    "wheel",
];

/// Words in paths of libraries that tests are written with.
const LIBRARIES: &[&str] = &[
    "testify",
    "gotest.tools",
    "gomega",
    "ginkgo",
    "go-cmp",
    "googletest",
    "gtest",
    "gmock",
    "catch2",
    "catch.hpp",
    "catch_amalgamated",
    "doctest.h",
    "cmocka",
    "cppunit",
    "phpunit",
    "minitest",
    "rspec",
    "Test/More",
    "Test/Simple",
    "Test/Builder",
    "Test2/",
    "TAP/",
    "test-unit",
    "mockito",
    "junit",
];

/// Folders that a setup fills; what a commit holds of them nobody installed.
const INSTALLED: &[&str] = &[
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".gradle",
    ".eggs",
    "site-packages",
    "bower_components",
];

/// Whether the file `path` stands where a runner of checks, or what it loads, would be found: below one of `folders`, from
/// which modules are loaded, or in a place for installed things.
pub fn shadows(path: &str, folders: &BTreeSet<String>) -> bool {
    let installed = path
        .split('/')
        .any(|part| INSTALLED.contains(&part) || part.ends_with(".egg-info") || part.ends_with(".dist-info"));
    installed
        || LIBRARIES.iter().any(|word| path.contains(word))
        || folders.iter().any(|folder| is_runner_module(path, folder))
}

fn is_runner_module(path: &str, folder: &str) -> bool {
    let below = match folder {
        "" => Some(path),
        folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
    };
    let Some(below) = below else { return false };
    let python = [".py", ".pyc", ".so", ".pyd"].iter().any(|end| below.ends_with(end));
    let module = below.split(['/', '.']).next().unwrap_or_default();
    python && (PYTHON_TOOLS.contains(&module) || PYTHON.split(' ').any(|known| known == module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_before_a_runner_is_told_from_product() {
        let folders = BTreeSet::from([String::new(), "tools".to_owned()]);
        for (path, yes) in [
            ("unittest/__main__.py", true),
            ("pytest.py", true),
            ("json.cpython-312-x86_64-linux-gnu.so", true),
            ("tools/random.py", true),
            ("node_modules/.bin/node", true),
            ("plug.egg-info/entry_points.txt", true),
            ("lib/Test/More.pm", true),
            ("vendor/github.com/stretchr/testify/assert/assertions.go", true),
            ("app/types.py", false),
            ("types/index.ts", false),
            ("part.py", false),
        ] {
            assert_eq!(shadows(path, &folders), yes, "{path}");
        }
    }
}
