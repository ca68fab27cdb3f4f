"""What other systems export, read: one file a form, and a line in the table of `forms`."""
