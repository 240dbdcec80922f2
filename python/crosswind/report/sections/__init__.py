"""The sections of a report, a file each: what its template needs, with figures and tables made."""
